"""Heat in a box by a 7-point stencil over several variables, after Mantevo's miniGhost."""
