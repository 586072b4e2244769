// Who asks.
import type { Subject } from '../rules/subject.ts';

/** Who asks. One key = tenant `default` until there are more; every store filters by `tenant`. */
export interface Caller {
  readonly tenant: string;
  readonly subject: Subject;
  readonly scopes: readonly string[];
}
