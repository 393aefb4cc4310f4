"""The widgets of the screens. They draw lines of spans, whose colours follow from roles of the theme."""
