"""What a set of measured settings says as a whole: what matters, and one setting for all programs.

``table`` turns a dataset or a study into rows; ``factors``, ``interactions``, ``mixed`` and
``importance`` judge parameters; ``classwide`` chooses one setting for a class of programs, and
``prove`` measures it.  What comes of that is a :class:`autotune.anova.result.ClasswideResult`.
"""
