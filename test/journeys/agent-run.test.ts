// Agent runs end to end on the embedded database.
import { agentSuite } from './agent-suite.ts';

agentSuite('PGlite', async () => ({}));
