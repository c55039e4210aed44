-- Saved views, visits and subscriptions, as triage.store.saved_views has them for SQLite.
CREATE TABLE saved_view (
    id TEXT COLLATE "C" PRIMARY KEY, owner TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
    page TEXT COLLATE "C" NOT NULL CHECK (page IN ('causes', 'incidents')), query TEXT COLLATE "C" NOT NULL,
    at DOUBLE PRECISION NOT NULL, actor TEXT COLLATE "C" NOT NULL
);
CREATE TABLE visit (
    person TEXT COLLATE "C" PRIMARY KEY, seen_at DOUBLE PRECISION NOT NULL, previous_at DOUBLE PRECISION
);
CREATE TABLE subscription (
    id TEXT COLLATE "C" PRIMARY KEY, owner TEXT COLLATE "C" NOT NULL, target TEXT COLLATE "C" NOT NULL,
    cause TEXT COLLATE "C", filter TEXT COLLATE "C" NOT NULL, at DOUBLE PRECISION NOT NULL
);
