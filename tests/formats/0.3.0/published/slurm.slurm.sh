# >>> published by autotune
# MEASURED WITHOUT THE GUARD: other programs may have made the difference
# NOT PROVEN TO BE FASTER, published on demand
# autotune 0.3.0, 2026-11-27 12:35 UTC, format slurm
# cluster: local, fingerprint 25b19e39088f3aa9
# for: openmpi 5.0.x (seen with 5.0.11)
# evidence: study:279e528bf100, 5 runs of exchange short 2x, 2026-11-27
# gain over the default: none proven
# checks: results were not checked (-verify)
# setting: btl_sm_eager_limit=1024
# probe: 1 value seen in force in a private copy
# undo: autotune unpublish FILE, or by hand: remove this file
# data: {"backup":null,"cluster":"local","content":{"groups":{"mca":{"btl_sm_eager_limit":"1024"}},"rules":[]},"date":"2026-11-27 12:35 UTC","evidence":{"check":[{"app":"exchange","input":"short","metric":"json:seconds","options":[],"origin":{"cwd":"/tmp/site/work","env":{"LC_ALL":"C.UTF-8","PATH":"/tmp/site/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin"},"files":{"/tmp/site/venv/bin/python":"a83c0370d91532c96d4060a0e7c107d1f2889dad8a98e03395e86ef0373fd467","/usr/bin/python3.11":"a83c0370d91532c96d4060a0e7c107d1f2889dad8a98e03395e86ef0373fd467"}},"placement":{},"program":["/tmp/site/venv/bin/python","-P","-m","runner.programs.micro","pingpong","--size","4096","--count","200"],"ranks":2,"verify":null}],"checked":"results were not checked (--verify)","cluster":"local","date":"2026-11-27","gain":null,"gain_ci":null,"guarded":false,"machine":"Intel(R) Xeon(R) Processor, 2 cores","mpi_bin":"/tmp/site/venv/bin","mpi_family":"openmpi","mpi_version":"5.0.11","programs":["exchange short 2x"],"proven":false,"runs":5,"setting":"btl_sm_eager_limit=1024","source":"study:279e528bf100","status":"unguarded"},"fingerprint":"25b19e39088f3aa9","format":"slurm","guards":true,"mpi":"openmpi 5.0.x (seen with 5.0.11)","probe":"1 value seen in force in a private copy","proven":true,"schema":1,"tool":"0.3.0"}
# checksum: sha256:8dee842ca0e2533fb1f0a4fcaa399e333708c4c05020193271f55bf5e09d3454
if case "$(mpirun --version 2>/dev/null | tr -s '[:space:]' ' ')" in # version check
*'(Open MPI) 5.0.11 '*) true ;; # version check
*'(Open MPI) '*) false ;; # version check
*) true ;; # version check
esac; then # version check
  export OMPI_MCA_btl_sm_eager_limit='1024'
else # version check
echo 'autotune: settings not used: proven with openmpi 5.0.11, mpirun is of another version (autotune verify-published)' >&2 # version check
fi # version check
