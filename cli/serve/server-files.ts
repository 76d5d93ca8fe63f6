import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { environmentVariable } from '../../src/base/options/resolve-options.ts';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import type { TlsPem } from '../../src/server/server-config.ts';

const KEYS_VARIABLE = 'TRAWL_API_KEYS';

/**
 * The keys in `--keys-file`, or else in TRAWL_API_KEYS (separated by line ends or commas); null if neither is set.
 *
 * @throws TrawlError CONFIG_INVALID.
 */
export function readKeys(file: string | undefined): AccessKeys | null {
  if (file !== undefined) return AccessKeys.parse(readText(file, '--keys-file'), file);
  const text = environmentVariable(KEYS_VARIABLE);
  return text === undefined || text === '' ? null : AccessKeys.parse(text.replaceAll(',', '\n'), KEYS_VARIABLE);
}

/**
 * Reads `--tls-cert` and `--tls-key` and checks that they belong together; null if neither is given.
 *
 * @throws TrawlError USAGE, CONFIG_INVALID.
 */
export function readTls(cert: string | undefined, key: string | undefined): TlsPem | null {
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined || key === undefined) {
    throw usageError('--tls-cert and --tls-key must be given together: the certificate and its private key.');
  }
  const files = { cert: readText(cert, '--tls-cert'), key: readText(key, '--tls-key') };
  try {
    createSecureContext(files);
  } catch (cause) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `${cert} and ${key} cannot be used for TLS (${(cause as Error).message}). Expected a certificate chain and its ` +
        'private key without a passphrase, both in PEM.',
      { cause },
    );
  }
  return files;
}

function readText(file: string, option: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new TrawlError('CONFIG_INVALID', `${option} ${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}
