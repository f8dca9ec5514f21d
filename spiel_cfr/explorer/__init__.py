"""A solved game to click through: what a page shows, and the page itself, one HTML file."""
