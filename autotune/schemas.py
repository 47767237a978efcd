"""JSON Schemas of the commands' output with ``--json``: one for each kind of document.

Each is derived from the model of the document (:mod:`autotune.document`), in JSON Schema 2020-12.
The tests validate the output of the commands with them.  docs/reference/json.md lists them.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any, NamedTuple

from autotune.errors import UsageError


class DocumentKind(NamedTuple):
    """A kind of document; ``model`` is where its model is: ``module:name``."""

    title: str
    model: str
    commands: tuple[str, ...]
    """The commands that write it, without ``autotune``; empty: any command that fails."""


ERROR = "error"
"""The schema of any command's output on failure."""
SCHEMAS: dict[str, DocumentKind] = {
    "search": DocumentKind(
        "Result of autotune search, or of the worker that ended a study",
        "autotune.study.search_result:Result",
        ("search", "worker"),
    ),
    "proving-elsewhere": DocumentKind(
        "A worker whose search is over while another one runs the proof",
        "autotune.api.workers:ProofByOther",
        ("search", "worker"),
    ),
    "status": DocumentKind(
        "What the workers of a study do now; null if there are no studies",
        "autotune.api.status:MaybeStatus",
        ("status",),
    ),
    "run": DocumentKind("One run of one setting", "autotune.api.run:RunDocument", ("run",)),
    "compare": DocumentKind(
        "Comparison of setting B with setting A",
        "autotune.comparison.comparison_document:AnyComparison",
        ("compare",),
    ),
    "check": DocumentKind(
        "Findings about launch lines", "autotune.api.launch_check:LaunchCheck", ("check",)
    ),
    "check-why": DocumentKind(
        "Meaning of a finding's code", "autotune.api.launch_check:ExplainedFinding", ("check",)
    ),
    "explain": DocumentKind(
        "One parameter on this machine",
        "autotune.parameters.explanation:ParameterExplanation",
        ("explain",),
    ),
    "noise": DocumentKind(
        "Noise of the default, and the gain that can be detected",
        "autotune.comparison.noise:NoiseReport",
        ("noise",),
    ),
    "explore": DocumentKind(
        "Dataset of a measuring campaign, as far as it was measured",
        "autotune.datasets.describe:ExploredDataset",
        ("explore",),
    ),
    "explore-dry-run": DocumentKind(
        "What autotune explore would measure", "autotune.api.campaign:PlannedDataset", ("explore",)
    ),
    "features": DocumentKind(
        "Features of one traced run", "autotune.api.feature_documents:TracedFeatures", ("features",)
    ),
    "features-list": DocumentKind(
        "Features and their definitions",
        "autotune.api.feature_documents:FeatureList",
        ("features",),
    ),
    "train": DocumentKind(
        "Model that was trained", "autotune.api.training:TrainedModel", ("train",)
    ),
    "predict": DocumentKind(
        "Predicted setting", "autotune.api.prediction_document:PredictionDocument", ("predict",)
    ),
    "layout-prediction": DocumentKind(
        "Predicted layout",
        "autotune.api.layout_prediction:LayoutPredictionDocument",
        ("predict",),
    ),
    "anova": DocumentKind(
        "Analysis of variance", "autotune.api.anova:AnalysisDocument", ("anova",)
    ),
    "classwide": DocumentKind(
        "One setting for a class of programs",
        "autotune.anova.classwide_result:ClasswideResult",
        ("classwide",),
    ),
    "calibrate": DocumentKind(
        "Response tables of MPI's operations on a cluster",
        "autotune.calibration.response:Calibration",
        ("calibrate",),
    ),
    "collectives": DocumentKind(
        "Best algorithm of each collective by ranks and message size",
        "autotune.collectives.algorithm_tables:CollectiveResult",
        ("collectives",),
    ),
    "importance": DocumentKind(
        "Importance of each parameter",
        "autotune.api.importance:ImportanceDocument",
        ("importance",),
    ),
    "studies": DocumentKind(
        "Studies in the results database, newest first",
        "autotune.api.study_documents:StudyList",
        ("studies",),
    ),
    "show": DocumentKind("One study", "autotune.api.study_documents:ShownStudy", ("show",)),
    "store-check": DocumentKind(
        "Check of a results database", "autotune.api.store_check:StoreCheck", ("store check",)
    ),
    "store-prune": DocumentKind(
        "What goes from a results database, or has gone",
        "autotune.api.store_prune:StorePrune",
        ("store prune",),
    ),
    "store-backup": DocumentKind(
        "Backup of a results database", "autotune.api.store_backup:StoreBackup", ("store backup",)
    ),
    "report": DocumentKind("Page that was written", "autotune.cli.report:WrittenPage", ("report",)),
    "apps": DocumentKind("Applications known by name", "autotune.api.clusters:AppList", ("apps",)),
    "doctor": DocumentKind(
        "Checks of this machine", "autotune.api.doctor:DoctorReport", ("doctor",)
    ),
    "publish": DocumentKind(
        "Files that were published", "autotune.publish.publication:PublishedFiles", ("publish",)
    ),
    "publish-dry-run": DocumentKind(
        "Files that autotune publish would write",
        "autotune.api.publication:PlannedFiles",
        ("publish",),
    ),
    "publish-formats": DocumentKind(
        "Formats in which a setting is published",
        "autotune.api.publication:FormatList",
        ("publish",),
    ),
    "unpublish": DocumentKind(
        "Files that were removed or restored",
        "autotune.api.publication:RemovedFiles",
        ("unpublish",),
    ),
    "verify-published": DocumentKind(
        "State of published files",
        "autotune.publish.documents:VerifiedFiles",
        ("verify-published",),
    ),
    "cluster-list": DocumentKind(
        "Cluster definitions", "autotune.api.clusters:ClusterList", ("cluster list",)
    ),
    "cluster-show": DocumentKind(
        "One cluster definition", "autotune.api.clusters:ShownCluster", ("cluster show",)
    ),
    "cluster-split": DocumentKind(
        "Cores of this node divided among MPI jobs",
        "autotune.api.clusters:DividedCores",
        ("cluster split",),
    ),
    "dataset-list": DocumentKind(
        "Datasets", "autotune.api.dataset_list:DatasetList", ("dataset list",)
    ),
    "dataset-describe": DocumentKind(
        "One dataset", "autotune.datasets.describe:Description", ("dataset describe",)
    ),
    "dataset-classes": DocumentKind(
        "Classes of programs that communicate alike",
        "autotune.prediction.classes:ClassList",
        ("dataset classes",),
    ),
    "space-list": DocumentKind(
        "Parameter spaces", "autotune.api.spaces:SpaceList", ("space list",)
    ),
    "space-show": DocumentKind(
        "One parameter space on this MPI library",
        "autotune.api.spaces:ShownSpace",
        ("space show",),
    ),
    "space-check": DocumentKind(
        "Findings about a space file", "autotune.api.spaces:CheckedSpace", ("space check",)
    ),
    "space-discover": DocumentKind(
        "Parameters of this MPI library",
        "autotune.api.spaces:ParameterList",
        ("space discover",),
    ),
    "evaluate-predict": DocumentKind(
        "Scores of predictions on programs left out",
        "autotune.prediction.evaluation:EvaluationDocument",
        ("evaluate predict",),
    ),
    "mate-check": DocumentKind(
        "Check of a program's graphs", "autotune.api.graph_check:GraphCheck", ("mate check",)
    ),
    "testbed-up": DocumentKind("Testbed that is up", "runner.testbed:Testbed", ("testbed up",)),
    "testbed-status": DocumentKind(
        "Testbeds", "autotune.cli.testbed_commands:TestbedList", ("testbed status",)
    ),
    "testbed-down": DocumentKind(
        "Testbeds that were taken down", "autotune.cli.testbed_commands:DownList", ("testbed down",)
    ),
    "testbed-run": DocumentKind(
        "Command that ran on a testbed", "runner.testbed:Ran", ("testbed run",)
    ),
    "schema": DocumentKind(
        "JSON Schemas of the commands", "autotune.cli.schema:SchemaList", ("schema",)
    ),
    "error": DocumentKind("Error of a command with --json", "autotune.document:ErrorDocument", ()),
}
"""All schemas by name.  A model is imported when its schema is asked for."""


def schemas_of(command: str) -> tuple[str, ...]:
    """The names of the schemas of a command; empty if it writes no document."""
    return tuple(name for name, schema in SCHEMAS.items() if command in schema.commands)


def load_schema(name: str) -> dict[str, Any]:
    """The schema ``name`` as JSON types.  Raises UsageError for an unknown name."""
    if name not in SCHEMAS:
        near = difflib.get_close_matches(name, SCHEMAS, 1)
        suggestion = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(
            f"there is no JSON schema {name!r}{suggestion}  To list all: autotune schema",
            code="schema.unknown",
        )
    from autotune.document import schema_of

    title, model, _ = SCHEMAS[name]
    module, _, attribute = model.partition(":")
    return schema_of(getattr(importlib.import_module(module), attribute), title)
