"""The pages, asked as a browser without JavaScript and as a program would."""
