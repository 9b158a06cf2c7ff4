# docker build -t migrate-groups .                         every command that needs no Spark
# docker build -t migrate-groups:spark --target spark .    also reconcile, audit, history, sandbox and demo

FROM python:3.13.12-slim-bookworm AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY scripts/constraints.txt ./
COPY migrate_groups ./migrate_groups
RUN python -m venv /opt/migrate-groups
# The constraints hold for the build of the package, too.
ENV PIP_CONSTRAINT=/build/constraints.txt PIP_BUILD_CONSTRAINT=/build/constraints.txt PIP_NO_CACHE_DIR=1
RUN /opt/migrate-groups/bin/pip install .

FROM build AS build-spark
RUN /opt/migrate-groups/bin/pip install ".[spark]"

FROM python:3.13.12-slim-bookworm AS base
RUN useradd --uid 10001 --create-home migrate-groups && install --directory --owner migrate-groups /data
ENV PATH=/opt/migrate-groups/bin:$PATH
# Specs, snapshots and run directories: mount a folder here.
WORKDIR /data
ENTRYPOINT ["migrate-groups"]
CMD ["--help"]

FROM base AS spark
# Debian has Java 17 in bookworm only. Spark's scripts call ps.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build-spark /opt/migrate-groups /opt/migrate-groups
USER migrate-groups

# The last stage is the default target.
FROM base AS cli
COPY --from=build /opt/migrate-groups /opt/migrate-groups
USER migrate-groups
