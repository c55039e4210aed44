-- The work on causes, as triage.store.cause_work has it for SQLite.
CREATE TABLE cause_work (
    cause TEXT COLLATE "C" PRIMARY KEY,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('open', 'acknowledged', 'fixed', 'ignored')),
    fixed_in TEXT COLLATE "C" NOT NULL, fixed_at DOUBLE PRECISION, ignored_until DOUBLE PRECISION,
    assignee TEXT COLLATE "C" NOT NULL, ticket TEXT COLLATE "C" NOT NULL, at DOUBLE PRECISION NOT NULL,
    actor TEXT COLLATE "C" NOT NULL
);
CREATE TABLE cause_comment (
    cause TEXT COLLATE "C" NOT NULL, at DOUBLE PRECISION NOT NULL, actor TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL, PRIMARY KEY (cause, at, actor)
);
