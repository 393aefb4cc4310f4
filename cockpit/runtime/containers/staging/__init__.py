"""Local copies of images and datasets: made once, shared between jobs, kept for a while after use, then removed."""
