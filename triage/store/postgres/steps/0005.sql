-- Facts of jobs, as triage.store.fact_tables has them for SQLite.
CREATE TABLE fact (
    name TEXT COLLATE "C" NOT NULL, value TEXT COLLATE "C" NOT NULL,
    incident BIGINT NOT NULL REFERENCES incident (num) ON DELETE CASCADE, PRIMARY KEY (name, value, incident)
);
CREATE INDEX fact_incident ON fact (incident);
INSERT INTO fact SELECT v.key, v.value, i.num FROM incident i JOIN job j ON j.id = i.job,
    json_each_text(CAST(replace(j.versions, '\u0000', '') AS json)) AS v;
