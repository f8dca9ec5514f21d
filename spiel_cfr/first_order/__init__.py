"""First-order methods for bilinear saddle points, over the strategies of a game in sequence form."""
