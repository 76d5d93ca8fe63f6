import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a prebuilt binary has to fit. */
export interface Machine {
  /** As in `process.platform` and `process.arch`. */
  readonly platform: string;
  readonly arch: string;
  /** Linux only: which C library this process uses. */
  readonly musl: boolean;
  /** The version of Node-API, as in `process.versions.napi`. */
  readonly nodeApi: number;
}

/** `prebuilds/prebuilds.json`, which scripts/prebuild.mjs writes beside the binaries. */
interface PrebuildList {
  /** The version of Node-API that the binaries need. */
  readonly nodeApi: number;
  /** By target (see `targetOf`). */
  readonly binaries: Readonly<Record<string, { readonly sha256: string; readonly bytes: number }>>;
}

type FoundPrebuilt =
  | { readonly ok: true; readonly path: string; readonly target: string }
  /** `reason` says why no prebuilt binary can be used. */
  | { readonly ok: false; readonly reason: string };

/** The folder's name in `prebuilds/`: `linux-x64`, `linuxmusl-arm64`, `darwin-arm64`. */
export function targetOf({ platform, arch, musl }: Machine): string {
  return `${platform}${musl ? 'musl' : ''}-${arch}`;
}

export function thisMachine(): Machine {
  const { platform, arch, versions } = process;
  return { platform, arch, musl: platform === 'linux' && isMusl(), nodeApi: Number(versions.napi) };
}

/** Finds the binary for a machine and compares it with its checksum, so that a damaged file is never loaded. */
export function findPrebuilt(folder: string, machine: Machine): FoundPrebuilt {
  const listFile = join(folder, 'prebuilds.json');
  const target = targetOf(machine);
  const refuse = (reason: string): FoundPrebuilt => ({ ok: false, reason });
  if (!existsSync(listFile)) return refuse('the package has no prebuilt binaries');
  let list: PrebuildList;
  try {
    list = JSON.parse(readFileSync(listFile, 'utf8'));
  } catch (error) {
    return refuse(`${listFile} cannot be read: ${(error as Error).message}`);
  }
  const { binaries = {}, nodeApi } = list;
  if (!Object.hasOwn(binaries, target))
    return refuse(`no binary is prebuilt for ${target}, only for ${Object.keys(binaries).join(', ') || 'nothing'}`);
  if (machine.nodeApi < nodeApi)
    return refuse(`the prebuilt binaries need Node-API ${nodeApi}, and this Node.js has ${machine.nodeApi}`);
  const path = join(folder, target, 'trawl.node');
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    return refuse(`${path} cannot be read: ${(error as Error).message}`);
  }
  const { sha256 } = binaries[target]!;
  const found = createHash('sha256').update(bytes).digest('hex');
  if (found === sha256) return { ok: true, path, target };
  return refuse(`${path} is damaged: its sha256 is ${found}, expected ${sha256}; install the package again`);
}

/** Whether the C library of this process is musl, by the files that are mapped into it: a glibc system may have musl as well. */
function isMusl(): boolean {
  try {
    return /\/ld-musl-[^/\s]*\.so/.test(readFileSync('/proc/self/maps', 'latin1'));
  } catch {
    // Without /proc (a sandbox), the process's own report names the version of glibc.
    const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
    return header?.glibcVersionRuntime === undefined;
  }
}
