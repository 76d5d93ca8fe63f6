import type { FolderModelIdentity } from '../../src/encoder/identity/model-identity.ts';

/** The identity of a model that does not exist. */
export function modelIdentity(
  fields: Partial<FolderModelIdentity> & Pick<FolderModelIdentity, 'name' | 'dimension'>,
): FolderModelIdentity {
  return {
    sha256: '0'.repeat(64),
    architecture: 'none',
    pooling: 'mean',
    normalize: false,
    similarity: 'inner-product',
    prefixes: { query: '', passage: '' },
    maxTokens: { query: 32, passage: 256 },
    precision: 'float32',
    batchInvariant: true,
    ...fields,
  };
}
