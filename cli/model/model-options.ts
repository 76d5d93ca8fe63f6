import { join } from 'node:path';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { POOLINGS, QUERY_TEMPLATES } from '../../src/encoder/identity/model-identity.ts';
import { locateModelFolder } from '../../src/encoder/model/model-location.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import * as option from '../options/option.ts';

export const DEVICE_OPTION = option.text(
  { value: 'DEVICE', default: 'cpu' },
  'Where the encoder runs: cpu, cuda, or CUDA devices such as cuda:1 or cuda:0,cuda:1. `trawl doctor` lists the libraries that CUDA needs.',
);

export const SHARE_WEIGHTS_OPTION = option.choice(
  { choices: ['auto', 'yes', 'no'], default: 'auto' },
  'Let encoder threads share one copy of the weights. It takes less memory, but is 10 to 15 % slower, and vectors may differ in the last bits. auto: only if copies would fill more than half of the memory.',
);

export function shareWeights(option: 'auto' | 'yes' | 'no'): boolean | undefined {
  return option === 'auto' ? undefined : option === 'yes';
}

/** Options that override a model's own description. */
export const OVERRIDE_OPTIONS = {
  pooling: option.choice(
    POOLINGS,
    "How token vectors become one vector: mean, cls, pooler (DPR), last, or none if the graph pools. Default: the model's.",
  ),
  normalize: option.choice(['yes', 'no'], "Whether vectors are divided by their length. Default: the model's."),
  'query-prefix': option.text('TEXT', "Prefix of every query; '' for none. Default: the model's."),
  'passage-prefix': option.text('TEXT', "Prefix of every passage; '' for none. Default: the model's."),
  'query-template': option.choice(
    QUERY_TEMPLATES,
    "What is embedded of a request's query, its question and its history (the agent's earlier queries), with the model's separator in between. Requests can name another. Default: the model's, else question-query.",
  ),
  'max-query-tokens': option.integer(
    { min: 3 },
    'Token limit of queries, prefix and special tokens included; longer queries are truncated. Other servers use 128, 256 or 512.',
  ),
  'max-passage-tokens': option.integer(
    { min: 3 },
    'Token limit of passages, prefix and special tokens included; longer passages are truncated.',
  ),
  dimension: option.integer(
    { min: 1 },
    'Keep only the first N values of every vector, then normalise. For models that were trained for it (Matryoshka).',
  ),
} as const satisfies OptionTable;

export function modelOverrides(options: OptionValues<typeof OVERRIDE_OPTIONS>): ModelOverrides {
  return {
    pooling: options.pooling,
    normalize: options.normalize === undefined ? undefined : options.normalize === 'yes',
    queryPrefix: options['query-prefix'],
    passagePrefix: options['passage-prefix'],
    queryTemplate: options['query-template'],
    maxQueryTokens: options['max-query-tokens'],
    maxPassageTokens: options['max-passage-tokens'],
    dimension: options.dimension,
  };
}

/** Only the settings that were given. */
export function givenOverrides(options: OptionValues<typeof OVERRIDE_OPTIONS>): ModelOverrides {
  return Object.fromEntries(Object.entries(modelOverrides(options)).filter(([, value]) => value !== undefined));
}

/** The options that give these settings, such as `--query-prefix`, `query: `, in the order of `OVERRIDE_OPTIONS`. */
export function optionsOf(overrides: ModelOverrides): string[] {
  const { normalize, ...others } = overrides;
  const values: { readonly [name in keyof typeof OVERRIDE_OPTIONS]: string | number | undefined } = {
    pooling: others.pooling,
    normalize: normalize === undefined ? undefined : normalize ? 'yes' : 'no',
    'query-prefix': others.queryPrefix,
    'passage-prefix': others.passagePrefix,
    'query-template': others.queryTemplate,
    'max-query-tokens': others.maxQueryTokens,
    'max-passage-tokens': others.maxPassageTokens,
    dimension: others.dimension,
  };
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined) return [];
    // A value that begins with a dash would be taken for an option.
    return `${value}`.startsWith('-') ? [`--${name}=${value}`] : [`--${name}`, `${value}`];
  });
}

/**
 * The folder of a model that an index records: without it, a search in another working directory would not find the model. Undefined for
 * an endpoint, and for the name of a model that comes with Trawl, which is found everywhere.
 */
export function recordedFolder(nameOrPath: string): string | undefined {
  if (isServerUrl(nameOrPath)) return undefined;
  const folder = locateModelFolder(nameOrPath);
  return folder === join(packageRoot, 'models', nameOrPath) ? undefined : folder;
}
