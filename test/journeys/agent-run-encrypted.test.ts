// Agent runs end to end under payload encryption.
import { agentSuite } from './agent-suite.ts';

agentSuite('PGlite under encryption', async () => ({ encryption: true }));
