#!/bin/sh
# Run once, when the database is made: a role that is no superuser, so that row-level security binds it.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$RECOLLECT_PASSWORD" --username postgres --dbname memories <<'SQL'
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE recollect_owner LOGIN PASSWORD :'password';
ALTER DATABASE memories OWNER TO recollect_owner;
SQL
