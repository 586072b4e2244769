// Who asks.

/** Who asks. One key = tenant `default` until there are more; every store filters by `tenant`. */
export interface Caller {
  readonly tenant: string;
  /** Opaque, not personal, never a secret. */
  readonly principal: string;
  readonly scopes: readonly string[];
}
