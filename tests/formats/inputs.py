"""What a user writes for the fixtures: an application, a space, figures and a plan."""

APP = """\
name = "exchange"
description = "Round trips of 4 KiB"
command = ["{python}", "-P", "-m", "runner.programs.micro"]
metric = "json:seconds"
default_input = "short"
default_ranks = 2
timeout_s = 60

[inputs.short]
description = "200 round trips"
args = ["pingpong", "--size", "4096", "--count", "200"]

[inputs.long]
description = "2000 round trips"
args = ["pingpong", "--size", "4096", "--count", "2000"]
"""
SPACE = """\
description = "Parameters of a site, and a value that ends every launch"

[parameters.btl_sm_eager_limit]
levels = ["1k", "16k"]

[parameters.coll]
levels = ["nonesuch"]
help = "No such component: MPI_Init fails"

[parameters.bind_to]
target = "placement"
levels = ["core", "none"]
"""
EAGER = """\
description = "One parameter, for a short calibration"

[parameters.btl_sm_eager_limit]
levels = ["1k", "16k"]
"""
FIGURE = """\
program = "Halo"
output = '^Halo [0-9.]+$'

[[figure]]
metric = '^finished in +(\\S+) s$'
choice = "last"

[[figure]]
metric_rate = '^rate = +(\\S+)'
unit = "GB/s"
"""
_CELL = """
[[cells]]
key = "{app}"
app = "{app}"
input = "{name}"
ranks = 2
space = "openmpi"
run_s = 0.5

[cells.levels]
btl_sm_eager_limit = ["1k", "16k"]
bind_to = ["core", "none"]
"""
PLAN = """\
kind = "explore"
name = "programs"
title = "Settings of four programs"
settings = 3
keep = 1.0
best = 1
more = 1
seed = 1
""" + "".join(
    _CELL.format(app=app, name=name)
    for app, name in (("exchange", "short"), ("ring", "tiny"), ("nas-is", "S"), ("nas-ep", "S"))
)
