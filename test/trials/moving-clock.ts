import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The wall clock of another process, which can be moved while it runs. Its monotonic clock does not change. */
export interface MovingClock {
  /** Environment variables for the process. */
  readonly env: Readonly<Record<string, string>>;
  /** The means that moves the clock, for the report. */
  readonly how: string;
  /** Sets the offset from the true time, in whole hours. */
  set(hours: number): void;
}

/** The paths of Debian's package. */
const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
];

/** Uses libfaketime if it is installed (Debian: apt-get install libfaketime), else a preloaded module that replaces Date. */
export function movingClock(folder: string): MovingClock {
  const library = FAKETIME.find((path) => existsSync(path));
  return library === undefined ? movingDate(folder) : faketime(folder, library);
}

function faketime(folder: string, library: string): MovingClock {
  const file = join(folder, 'clock');
  const set = (hours: number): void => {
    writeFileSync(file, `${hours < 0 ? '-' : '+'}${Math.abs(hours)}h`);
    // libfaketime reads the file again when its modification time has changed.
    utimesSync(file, new Date(), new Date());
  };
  set(0);
  return {
    how: 'libfaketime',
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set,
  };
}

const MODULE = `
const { readFileSync } = require('node:fs');
const RealDate = Date;
const now = () => RealDate.now() + Number(readFileSync(process.env.TRIAL_CLOCK_FILE, 'utf8') || 0) * 3_600_000;
globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(now());
    else super(...args);
  }
  static now() {
    return now();
  }
};
`;

/** Moves only JavaScript's Date, in all threads; C libraries still see the true time. */
function movingDate(folder: string): MovingClock {
  const [file, module] = [join(folder, 'clock-hours'), join(folder, 'moving-date.cjs')];
  const set = (hours: number): void => writeFileSync(file, String(hours));
  set(0);
  writeFileSync(module, MODULE);
  return {
    how: 'Date moved',
    env: { NODE_OPTIONS: `--require ${JSON.stringify(module)}`, TRIAL_CLOCK_FILE: file },
    set,
  };
}
