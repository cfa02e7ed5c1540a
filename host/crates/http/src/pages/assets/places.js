// Places of fields on a page, as fractions of it: edges that a moved field snaps to, and free places
// beside its neighbours.

/** Space between fields that would overlap otherwise. */
const GAP = 0.004;
/** Number of neighbours whose sides are tried for a free place. */
const TRIED = 60;

function overlaps(one, other) {
  const apart = 1e-6;
  return one.x + one.w > other.x + apart && other.x + other.w > one.x + apart
    && one.y + one.h > other.y + apart && other.y + other.h > one.y + apart;
}

/** Keeps an area on its page, and a number short. */
function within(area) {
  const round = (value) => Math.round(value * 1e5) / 1e5;
  area.w = round(Math.min(Math.max(area.w, 0.01), 1));
  area.h = round(Math.min(Math.max(area.h, 0.008), 1));
  area.x = round(Math.min(Math.max(area.x, 0), 1 - area.w));
  area.y = round(Math.min(Math.max(area.y, 0), 1 - area.h));
  return area;
}

/** Moves an area, or its far edges when it is resized, to the nearest edges of its neighbours and to
    the margin of the page. Returns the lines that it snapped to. */
function snap(area, neighbours, { margin, reach, resizing = false }) {
  const lines = {};
  for (const [axis, size] of [["x", "w"], ["y", "h"]]) {
    const edges = [margin[axis], 1 - margin[axis], ...neighbours.flatMap((other) => [other[axis], other[axis] + other[size]])];
    const own = resizing ? [area[axis] + area[size]] : [area[axis], area[axis] + area[size]];
    let best = null;
    for (const edge of edges) {
      for (const mine of own) {
        const shift = edge - mine;
        if (Math.abs(shift) <= reach[axis] && (!best || Math.abs(shift) < Math.abs(best.shift))) best = { shift, edge };
      }
    }
    if (!best) continue;
    area[resizing ? size : axis] += best.shift;
    lines[axis] = best.edge;
  }
  within(area);
  return lines;
}

/** Returns the free place that is nearest to an area; none if the page is full. */
function freePlace(area, neighbours) {
  const isFree = (place) => !neighbours.some((other) => overlaps(place, other));
  if (isFree(area)) return area;
  const distance = (place) => Math.hypot(place.x - area.x, place.y - area.y);
  const near = [...neighbours].sort((one, other) => distance(one) - distance(other)).slice(0, TRIED);
  const columns = [area.x, ...near.flatMap((other) => [other.x - area.w - GAP, other.x + other.w + GAP])];
  const rows = [area.y, ...near.flatMap((other) => [other.y - area.h - GAP, other.y + other.h + GAP])];
  const isOnPage = ({ x, y }) => x >= 0 && y >= 0 && x + area.w <= 1 && y + area.h <= 1;
  const places = columns.flatMap((x) => rows.map((y) => ({ ...area, x, y }))).filter(isOnPage);
  places.sort((one, other) => distance(one) - distance(other));
  const free = places.find(isFree);
  return free && within(free);
}

/** Returns an area moved on in one direction until it has passed its neighbours; none if it leaves the
    page. */
function past(area, neighbours, [right, down]) {
  const place = { ...area };
  for (;;) {
    const other = neighbours.find((neighbour) => overlaps(place, neighbour));
    if (!other) return place;
    if (right) place.x = right > 0 ? other.x + other.w + GAP : other.x - place.w - GAP;
    else place.y = down > 0 ? other.y + other.h + GAP : other.y - place.h - GAP;
    if (place.x < 0 || place.y < 0 || place.x + place.w > 1 || place.y + place.h > 1) return null;
  }
}

