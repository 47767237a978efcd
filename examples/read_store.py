"""Read runs of the results database as a pandas table."""

import autotune


def main() -> None:
    with autotune.Store.open("examples.db") as store:
        studies = store.studies()
    for known in studies:
        study = autotune.Study(known.hash, "examples.db")
        print(f"{study.id}  {known.app} on {known.ranks} ranks: {study.status}, {known.runs} runs")
        if known.runs:
            runs = study.runs()
            ok = runs[runs["state"] == "ok"]
            print(ok.groupby("phase")["wall_s"].describe()[["count", "50%", "max"]].to_string())


if __name__ == "__main__":
    main()
