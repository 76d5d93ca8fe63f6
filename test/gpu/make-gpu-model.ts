import { mkdirSync, rmSync } from 'node:fs';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { GPU_CHECKPOINTS } from './gpu-checkpoints.ts';
import { writeRandomCheckpoint } from './random-checkpoint.ts';

// Writes a checkpoint and imports it, in a process of its own, so that several are made at the same time.
// Arguments: name, folder of the checkpoint, folder of the model, `small` or `whole`.
const [name, checkpoint, out, size] = process.argv.slice(2);
rmSync(checkpoint!, { recursive: true, force: true });
mkdirSync(checkpoint!, { recursive: true });
writeRandomCheckpoint(checkpoint!, GPU_CHECKPOINTS[name!]!(size === 'small'));
await importModel(checkpoint!, { out: out!, name: name!, precisions: ['float32', 'float16'] });
