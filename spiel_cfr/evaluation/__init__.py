"""Best responses, NashConv, exploitability, and linear programs."""
