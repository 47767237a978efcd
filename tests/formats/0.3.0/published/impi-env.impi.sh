# >>> published by autotune
# autotune 0.3.0, 2026-11-27 12:35 UTC, format impi-env
# cluster: local, fingerprint 25b19e39088f3aa9
# for: impi 2021.18.x (seen with 2021.18.1)
# evidence: study:abc, 0 runs of ,
# gain over the default: none proven
# setting: a=1
# probe: seen
# undo: autotune unpublish FILE, or by hand: remove this file
# data: {"backup":null,"cluster":"local","content":{"groups":{"env":{"OMP_PROC_BIND":"close"},"mca":{"I_MPI_ADJUST_BCAST":"3","MPIR_CVAR_CH4_SHM_POSIX_EAGER":"iqueue"},"placement":{"bind_to":"core"}},"rules":[]},"date":"2026-11-27 12:35 UTC","evidence":{"check":[],"cluster":"","date":"","gain":null,"gain_ci":null,"machine":"","mpi_bin":"","mpi_family":"","mpi_version":"","programs":[],"proven":true,"runs":0,"setting":"a=1","source":"study:abc","status":"recommended"},"fingerprint":"25b19e39088f3aa9","format":"impi-env","guards":true,"mpi":"impi 2021.18.x (seen with 2021.18.1)","probe":"seen","proven":true,"schema":1,"tool":"0.3.0"}
# checksum: sha256:f7b1d9ebd48448854d3e77590b41db9dc1ea200dbf9d6ce857bf11841d0b19dd
if case "$(mpirun --version 2>/dev/null | tr -s '[:space:]' ' ')" in # version check
*'Intel(R) MPI Library for Linux* OS, Version 2021.18.1 '*) true ;; # version check
*'Intel(R) MPI Library for Linux* OS, Version '*) false ;; # version check
*) true ;; # version check
esac; then # version check
  export I_MPI_ADJUST_BCAST='3'
  export I_MPI_PIN='1'
  export I_MPI_PIN_DOMAIN='core'
  export MPIR_CVAR_CH4_SHM_POSIX_EAGER='iqueue'
  export OMP_PROC_BIND='close'
else # version check
echo 'autotune: settings not used: proven with impi 2021.18.1, mpirun is of another version (autotune verify-published)' >&2 # version check
fi # version check
