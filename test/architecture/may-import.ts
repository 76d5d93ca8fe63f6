import { ENCODERS } from './may-import/encoders.ts';
import { ENGINE } from './may-import/engine.ts';
import type { ImportRules } from './may-import/import-rules.ts';
import { INDEXES } from './may-import/indexes.ts';
import { MAKING } from './may-import/making.ts';
import { SERVER } from './may-import/server.ts';
import { TRAINING } from './may-import/training.ts';

/** The rules of all files. */
export const MAY_IMPORT: ImportRules = {
  ...ENGINE,
  ...ENCODERS,
  ...INDEXES,
  ...SERVER,
  ...MAKING,
  ...TRAINING,
  'cli/': [
    'src/',
    'hub/',
    'model-import/',
    'corpus/',
    'prepare/',
    'vector-files/',
    'indexer/',
    'export/',
    'publish/',
    'evaluation/',
    'bulk-search/',
    'records/',
    'trajectories/',
    'mining/',
    'triage/',
    'iteration/',
    'sync/',
    'rollout/',
    'bench/',
    'replay/',
  ],
  'bench/': [
    'src/',
    'model-import/',
    'corpus/',
    'prepare/',
    'indexer/',
    'vector-files/',
    'evaluation/',
    'bulk-search/',
    'triage/',
  ],
  'test/': [''],
};
