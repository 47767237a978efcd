"""How things look on a terminal: tables, live lines, answers.  A script may use it, too."""
