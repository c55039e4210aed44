-- The time of the last ingest is found without reading all incidents.
CREATE INDEX incident_seen ON incident (seen_at);
