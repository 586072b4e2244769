// Checks scripts of the provider `scripted` when they are loaded: a script file is input like any other.
import schema from '../../schemas/agent-script.schema.json' with { type: 'json' };
import type { Checked } from './checked.ts';
import type { AgentScript } from '../../schemas/types.generated.ts';
import { compileUserSchema } from './user-schema.ts';

/** Faults are pointers into the script. */
export function checkAgentScript(value: unknown): Checked<AgentScript> {
  const compiled = compileUserSchema(schema);
  if (!compiled.ok) return compiled;
  return compiled.value.validate(value) as Checked<AgentScript>;
}
