# One image for both halves; docker-compose.yml says which one a container is.
# Debian, not Alpine: the core of Temporal's SDK is a native library for glibc.
FROM node:24.21.0-bookworm-slim

RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY package.json package-lock.json ./
# There is no build step: each program is compiled when it first starts, and kept in the cache folder.
RUN npm ci --omit=dev --no-audit --no-fund && npm cache clean --force
COPY tsconfig.json ./
COPY schemas ./schemas
COPY src ./src
COPY workflows ./workflows
COPY activities ./activities

ENV NODE_ENV=production \
    OPENWOP_HOST=0.0.0.0 \
    OPENWOP_PORT=8787 \
    OPENWOP_DATA_DIR=/home/node/data \
    OPENWOP_CACHE_DIR=/home/node/cache \
    MALLOC_ARENA_MAX=2
# A volume takes its owner from what is there.
RUN mkdir -p /home/node/data /home/node/cache && chown -R node:node /home/node
USER node
EXPOSE 8787

# Not by npm: signals reach the host itself, which drains.
CMD ["node", "src/app/launch.js", "serve"]
