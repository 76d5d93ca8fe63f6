import { makeGpuModel } from './gpu-models.ts';

// A process of its own, so that the models are made at the same time. Arguments: folder, name, `small` or `whole`.
const [folder, name, size] = process.argv.slice(2);
await makeGpuModel(folder!, name!, size === 'small');
