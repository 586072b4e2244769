// What is too large to be carried, by its hash (design §2.6).

export interface ContentStore {
  /** Returns `sha256:<hex>` of the bytes. Idempotent. Throws HostError payload_too_large above 64 MiB. */
  put(tenant: string, bytes: Uint8Array): Promise<string>;
  /** Throws HostError content_missing. */
  get(tenant: string, hash: string): Promise<Uint8Array>;
}
