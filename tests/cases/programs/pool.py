"""A pool of workers with pickled tasks: python -m mpi4py.futures pool.py."""

from mpi4py.futures import MPIPoolExecutor


def square(pair: tuple[int, float]) -> float:
    return pair[0] ** 2 + pair[1] ** 2


if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        pairs = ((i, i / 4) for i in range(200))
        print("checksum", sum(pool.map(square, pairs, chunksize=10)))
