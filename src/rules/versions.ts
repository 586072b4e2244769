// Versions that the first major tells (run-event.schema.json, capabilities.md): of the engine that writes events, and of
// the shape of its logs.

export const ENGINE_VERSION = 1;
export const EVENT_LOG_SCHEMA_VERSION = 2;
