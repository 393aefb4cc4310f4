"""The cockpit as a Textual application. Nothing below it knows Textual."""
