"""One fill: the canvas, the loop that settles its slots, and the rules that the loop follows."""
