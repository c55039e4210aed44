-- The latest incidents of a filter, and their hosts and facts, are read from indexes alone: where these incidents are
-- spread over the tables, each of them was a page of a table to read.
CREATE INDEX incident_verdict_num ON incident (verdict, at, num);
CREATE INDEX incident_domain_num ON incident (domain, at, num);
CREATE INDEX host_values ON host (incident, blamed, name);
CREATE INDEX fact_values ON fact (incident, name, value);
-- These are the beginnings of others.
DROP INDEX incident_verdict;
DROP INDEX incident_domain;
DROP INDEX incident_signature;
DROP INDEX incident_key;
DROP INDEX host_incident;
DROP INDEX fact_incident;
