// The operator's keys (OPENWOP_ENCRYPTION_KEYS) as one process has them, and which one it encrypts with (architecture §10.2):
// they encrypt payloads and wrap the keys of subjects.

export interface HostKey {
  /** Readable beside whatever it encrypts; never derived from the key. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

export interface KeyRing {
  /** All of this process, in the order of its configuration: each decrypts. */
  readonly keys: readonly HostKey[];
  /** The one that encrypts and wraps; undefined: this process has none. */
  current(): HostKey | undefined;
  /**
   * Before something is encrypted: resolves once the others can know what this process encrypts with. A process that slept
   * announces itself again; while the database does not answer it goes on with the key that it has.
   */
  announced(): Promise<void>;
  /** Whether all live processes encrypt with the current key: only then it may wrap again what others wrapped. */
  isShared(): boolean;
  /** By which name the current key is announced to the other processes; undefined: nothing is announced. */
  announcedAs(): string | undefined;
  /** Ids of keys that live processes encrypt with, and this one does not have. */
  missing(): readonly string[];
}
