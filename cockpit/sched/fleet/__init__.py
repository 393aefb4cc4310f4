"""The steps that a fleet's scheduler adds to the cycle: placement by totals, and the placements that members keep
reserved for it."""
