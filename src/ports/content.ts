// What is too large to be carried, by its hash (architecture §2.6).

export interface ContentStore {
  /** Returns `sha256:<hex>` of the bytes. Idempotent. Throws HostError payload_too_large above 64 MiB. */
  put(tenant: string, bytes: Uint8Array): Promise<string>;
  /** The same for several values, their hashes in their order. When it throws, any of them may be stored. */
  putAll(tenant: string, values: readonly Uint8Array[]): Promise<readonly string[]>;
  /** Throws HostError content_missing. */
  get(tenant: string, hash: string): Promise<Uint8Array>;
}
