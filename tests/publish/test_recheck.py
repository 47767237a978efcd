"""What is said of a published gain that is measured again."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.notes import Note
from autotune.publish.recheck import PAIRS, Claim, _judgement, claim_of
from autotune.stats import Decision, looks_up_to
from autotune.study.objections import Finding
from autotune.testing.format import evidence
from benchmarks.published_simulation import allowed, look_again, refuses_twice_the_rate
from benchmarks.study_simulation import NOISES
from tests.case_table import case_table


def decision(claim: Claim, gains: list[float]) -> Decision:
    """The decision after pairs with exactly these gains."""
    default = np.ones(len(gains))
    return claim.plan(len(gains)).decide(default, 1 / (1 + np.array(gains)), resolution=0.0)


def spread(low: float, high: float, pairs: int = 40) -> list[float]:
    """Gains evenly between two, in an order that is not theirs."""
    even = np.linspace(low, high, pairs)
    return [float(g) for g in np.random.default_rng(1).permutation(even)]


@case_table(
    ("published", "gains", "status", "shrunk", "inside"),
    [
        (0.10, spread(0.05, 0.15), "still there", False, True),
        (0.10, [0.30] * 40, "still there", False, False),
        (0.10, [0.04] * 40, "still there", True, False),
        (0.10, [0.01] * 40, "gone", True, False),
        (0.10, [-0.05] * 40, "gone", True, False),
        (0.10, spread(-0.07, 0.08), "gone", True, False),
        (0.10, spread(-0.3, 0.4), "cannot be told", False, True),
        (0.03, spread(-0.05, 0.09), "cannot be told", False, True),
        # Half of a gain that is itself below 2 % is worth naming.
        (0.012, [0.011] * 40, "still there", False, False),
        (0.012, [0.004] * 40, "gone", True, False),
        (None, [0.03] * 40, "still there", None, None),
        (None, [0.01] * 40, "gone", None, None),
        (30.0, [30.0] * 40, "still there", False, True),
    ],
)
def test_the_answer_follows_from_the_interval(
    published: float | None, gains: list[float], status: str, shrunk: object, inside: object
) -> None:
    claim = Claim(published)
    found = decision(claim, gains)
    answer = claim.answer(found)
    assert answer.status == status
    assert answer.shrunk is shrunk
    assert answer.inside is inside
    words = answer.words(found)
    assert "interval" in words
    assert ("published" in words) == (published is not None)
    assert answer.why in words
    assert answer.why or not shrunk
    assert answer.to_json()["below_half_of_published"] is shrunk


@case_table(
    ("gains", "status"),
    [
        ([0.0, 0.001, -0.001, 0.002] * 10, "still there"),
        ([0.05] * 40, "still there"),
        ([-0.01] * 40, "gone"),
        (spread(-0.4, 0.3), "cannot be told"),
    ],
)
def test_a_program_of_a_class_without_a_gain_is_only_to_be_no_slower(
    gains: list[float], status: str
) -> None:
    claim = Claim(None, faster=False)
    assert claim.answer(decision(claim, gains)).status == status


def test_a_gain_with_other_results_is_contradicted() -> None:
    claim = Claim(0.1)
    outcome = ComparisonOutcome("study", decision(claim, [0.1] * 40))
    assert _judgement("s", "p", claim, outcome).status == "still there"
    outcome.findings = (Finding(Note("result.output_differs", "why"), stops=True),)
    found = _judgement("s", "p", claim, outcome)
    assert found.failed
    assert found.to_json()["status"] == "contradicted"
    assert found.to_json()["still_better"] is False
    assert [note["code"] for note in found.data["contradictions"]] == ["result.output_differs"]


def test_too_few_pairs_tell_nothing() -> None:
    claim = Claim(0.1)
    found = Claim(0.1).plan(8).decide([1.0] * 3, [0.5] * 3)
    assert claim.answer(found).status == "cannot be told"


def test_looks_end_with_the_pairs_that_are_allowed() -> None:
    assert looks_up_to(6) == (6,)
    assert looks_up_to(40) == (8, 12, 18, 27, 40)
    assert looks_up_to(60) == (8, 12, 18, 27, 40, 60)
    assert looks_up_to(100) == (8, 12, 18, 27, 40, 60, 90, 100)


def test_the_claim_is_that_of_the_program() -> None:
    study = evidence(source="study:a", gain=0.08)
    assert claim_of(study, {"app": "x"}) == Claim(0.08)
    assert claim_of(study, {"app": "x", "gain": 0.2}) == Claim(0.2)
    assert claim_of(study, {"app": "x", "gain": None}) == Claim(None, faster=False)
    assert claim_of(study, {"app": "x", "gain": "much"}) == Claim(None, faster=False)
    # The gain of a table is that of single sizes.
    assert claim_of(evidence(source="collectives:a", gain=0.3), {"app": "x"}) == Claim()
    assert claim_of(evidence(source="study:a", proven=False), {"app": "x"}) == Claim()


def answers(noise: str, published: float, truth: float, studies: int) -> list[str]:
    return [look_again(noise, published, truth, PAIRS, seed)[0].status for seed in range(studies)]


def test_gains_that_are_there_and_gains_that_are_lost_are_told_apart() -> None:
    there, lost = answers("5 %", 0.1, 0.1, 20), answers("5 %", 0.1, 0.0, 20)
    assert there.count("still there") >= 18
    assert there.count("gone") <= allowed(20)
    assert lost.count("gone") >= 16
    assert lost.count("still there") <= allowed(20)


STUDIES = 600


def test_the_bound_refuses_twice_the_promised_rate() -> None:
    assert refuses_twice_the_rate(STUDIES)
    assert not refuses_twice_the_rate(100)


@pytest.mark.slow
@pytest.mark.parametrize("noise", sorted(NOISES))
@pytest.mark.parametrize(("truth", "wrong"), [(0.10, "gone"), (0.05, "gone"), (0.0, "still there")])
def test_wrong_answers_are_rare(noise: str, truth: float, wrong: str) -> None:
    """A gain of which half or more is left is not called gone, one that is lost not still there."""
    assert answers(noise, 0.10, truth, STUDIES).count(wrong) <= allowed(STUDIES)


@pytest.mark.slow
def test_a_lost_gain_of_ten_percent_is_noticed_at_five_percent_noise() -> None:
    assert answers("5 %", 0.10, 0.0, 200).count("gone") >= 180
