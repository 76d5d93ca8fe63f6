import { locateModelFolder } from '../src/embedding/model-location.ts';
import type { ModelOverrides } from '../src/embedding/model-overrides.ts';
import { TrawlError } from '../src/errors.ts';
import { POOLINGS, PRECISIONS } from '../src/manifest/model-identity.ts';
import type { OptionTable, OptionValues } from '../src/options/option-spec.ts';

export const DEVICE_OPTION = {
  kind: 'string',
  value: 'DEVICE',
  default: 'cpu',
  help: 'Where the encoder runs: cpu, cuda, or CUDA devices such as cuda:1 or cuda:0,cuda:1. CUDA needs libraries that `trawl doctor` names.',
} as const;

export const PRECISION_OPTION = {
  kind: 'choice',
  choices: PRECISIONS,
} as const;

export const SHARE_WEIGHTS_OPTION = {
  kind: 'choice',
  choices: ['auto', 'yes', 'no'],
  default: 'auto',
  help: 'Whether encoder threads share one copy of the weights: less memory, 10 to 15 % slower, other last bits. auto: where copies would fill half of the memory.',
} as const;

export function shareWeights(option: 'auto' | 'yes' | 'no'): boolean | undefined {
  return option === 'auto' ? undefined : option === 'yes';
}

/** What may be set against the description of a model that an index is made with. */
export const OVERRIDE_OPTIONS = {
  pooling: {
    kind: 'choice',
    choices: POOLINGS,
    help: "How token vectors become one, instead of the model's own way: mean, cls, pooler (DPR), last; none where the graph has pooled.",
  },
  normalize: {
    kind: 'choice',
    choices: ['yes', 'no'],
    help: "Divide vectors by their length, or do not. Default: the model's own.",
  },
  'query-prefix': {
    kind: 'string',
    value: 'TEXT',
    help: "Put before every query instead of the model's own prefix; '' for none.",
  },
  'passage-prefix': {
    kind: 'string',
    value: 'TEXT',
    help: "Put before every passage instead of the model's own prefix; '' for none.",
  },
  'max-query-tokens': {
    kind: 'integer',
    min: 3,
    help: 'Queries are cut to this many tokens, prefix and special tokens included. Peers use 128, 256 and 512.',
  },
  'max-passage-tokens': { kind: 'integer', min: 3, help: 'The same for passages.' },
  dimension: {
    kind: 'integer',
    min: 1,
    help: 'Keep this many values of every vector, then normalise again: for models trained for it (Matryoshka).',
  },
} as const satisfies OptionTable;

export function modelOverrides(options: OptionValues<typeof OVERRIDE_OPTIONS>): ModelOverrides {
  return {
    pooling: options.pooling,
    normalize: options.normalize === undefined ? undefined : options.normalize === 'yes',
    queryPrefix: options['query-prefix'],
    passagePrefix: options['passage-prefix'],
    maxQueryTokens: options['max-query-tokens'],
    maxPassageTokens: options['max-passage-tokens'],
    dimension: options.dimension,
  };
}

/** The folder of a model that was given by its path; a name in a collection finds its folder again by itself. */
export function folderOfPath(nameOrPath: string): string | undefined {
  return /[/\\]/.test(nameOrPath) ? locateModelFolder(nameOrPath) : undefined;
}

/** Mistakes in the settings of a model are the command line's here. */
export async function asUsage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'CONFIG_INVALID') {
      throw new TrawlError('USAGE', error.message, { details: error.details, cause: error });
    }
    throw error;
  }
}
