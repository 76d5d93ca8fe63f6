import { createHash } from 'node:crypto';
import { TrawlError } from '../errors.ts';

/**
 * A manifest carries a checksum of itself: SHA-256 over its JSON text without that field. It decides which vectors mean
 * what, so a changed byte in it would give wrong answers without any sign.
 */
export function withChecksum<Manifest extends object>(manifest: Manifest): Manifest & { checksum: string } {
  return { ...manifest, checksum: checksumOf(manifest) };
}

/**
 * Compares the checksum where there is one, and takes it off.
 *
 * @throws TrawlError INDEX_MANIFEST_INVALID when the manifest is not as it was written.
 */
export function checkChecksum(file: string, json: unknown): unknown {
  if (typeof json !== 'object' || json === null || !('checksum' in json)) return json;
  const { checksum, ...manifest } = json;
  if (checksum === checksumOf(manifest)) return manifest;
  throw new TrawlError(
    'INDEX_MANIFEST_INVALID',
    `${file}: is not as it was written: its checksum does not fit. Restore it; if it was changed on purpose, remove its ` +
      'field "checksum".',
  );
}

function checksumOf(manifest: object): string {
  return createHash('sha256').update(JSON.stringify(manifest)).digest('hex');
}
