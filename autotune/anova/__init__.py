"""Analysis of measured settings: which parameters matter, and one setting for all programs.

``table`` turns a dataset or a study into rows.  ``factors``, ``interactions``, ``mixed`` and
``importance`` judge parameters.  ``classwide`` chooses one setting for a class of programs;
``pruning`` and ``proof`` measure it.  The outcome is a
:class:`autotune.anova.classwide_result.ClasswideResult`.
"""
