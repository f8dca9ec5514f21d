"""What is proved of stable-predictive CFR: step sizes, and checks of a run against every promise."""
