import { basename } from 'node:path';
import { usageError } from '../../src/base/errors.ts';

export const OUT_OPTIONS = {
  out: {
    type: 'string',
    value: 'FILE|DIR',
    help: 'For candidates and construct: the file to write. For hand-over: the folder to write. Required.',
  },
} as const;

export const OVERWRITE_OPTION = {
  type: 'flag',
  help: 'For hand-over and construct: replace the output if it exists.',
} as const;

export const DATASET_OPTION = {
  type: 'string',
  value: 'NAME',
  help: "For hand-over and construct: the name of the data set, which is written to every row. Default: the candidates file's name without its extension.",
} as const;

/** @throws TrawlError USAGE. */
export function requiredOut(out: string | undefined, action: string, example: string): string {
  if (out !== undefined) return out;
  throw usageError(`trawl agentic-r ${action} needs --out, such as --out ${example}.`);
}

/** The data set of a candidates file: Agentic-R names the file after it. */
export function datasetOf(dataset: string | undefined, candidates: string): string {
  return dataset ?? basename(candidates).replace(/\.(json|jsonl)(\.gz|\.zst)?$/i, '');
}
