# >>> published by autotune
# autotune 0.3.0, 2026-11-27 12:35 UTC, format mpich-env
# cluster: local, fingerprint 25b19e39088f3aa9
# for: mpich 5.0.x (seen with 5.0.2)
# evidence: study:abc, 0 runs of ,
# gain over the default: none proven
# setting: a=1
# probe: seen
# undo: autotune unpublish FILE, or by hand: remove this file
# data: {"backup":null,"cluster":"local","content":{"groups":{"env":{"OMP_PROC_BIND":"close"},"mca":{"MPIR_CVAR_CH4_SHM_POSIX_EAGER":"iqueue"},"placement":{"bind_to":"core","map_by":"slot:PE=2"}},"rules":[]},"date":"2026-11-27 12:35 UTC","evidence":{"check":[],"cluster":"","date":"","gain":null,"gain_ci":null,"machine":"","mpi_bin":"","mpi_family":"","mpi_version":"","programs":[],"proven":true,"runs":0,"setting":"a=1","source":"study:abc","status":"recommended"},"fingerprint":"25b19e39088f3aa9","format":"mpich-env","guards":true,"mpi":"mpich 5.0.x (seen with 5.0.2)","probe":"seen","proven":true,"schema":1,"tool":"0.3.0"}
# checksum: sha256:4a0dce0d1160df83c19ea22d3f858cf1752a8653637a53238fa71078bbd8ef65
if case "$(mpirun --version 2>/dev/null | tr -s '[:space:]' ' ')" in # version check
*'HYDRA build details: Version: 5.0.2 '*) true ;; # version check
*'HYDRA build details: Version: '*) false ;; # version check
*) true ;; # version check
esac; then # version check
  export HYDRA_BINDING='core'
  export HYDRA_MAPPING='slot:PE=2'
  export MPIR_CVAR_CH4_SHM_POSIX_EAGER='iqueue'
  export OMP_PROC_BIND='close'
else # version check
echo 'autotune: settings not used: proven with mpich 5.0.2, mpirun is of another version (autotune verify-published)' >&2 # version check
fi # version check
