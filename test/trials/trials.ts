import { badClients, slowClients } from './bad-clients.ts';
import { clockJumps } from './clock-jumps.ts';
import { manyConnections, tlsConnections } from './connections.ts';
import { fullDisk, logOnFullDevice } from './full-disk.ts';
import { indexSwaps } from './index-swaps.ts';
import { renamedFolder } from './renamed-folder.ts';
import type { Trial } from './trial.ts';

/** The trials by the word that `--only` takes. */
export const TRIALS: Readonly<Record<string, Trial>> = {
  swaps: indexSwaps,
  rename: renamedFolder,
  'no-log': logOnFullDevice,
  'full-disk': fullDisk,
  clock: clockJumps,
  connections: manyConnections,
  tls: tlsConnections,
  'bad-clients': badClients,
  'slow-clients': slowClients,
};
