"""The experiments of Pellegrini's thesis (4.6 and 4.7) in their form, on this project's data."""
