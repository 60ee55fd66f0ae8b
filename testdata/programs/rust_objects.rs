// Allocations of Rust's library, and what each is, written to the file that the argument names:
// "dyn ADDRESS TYPE", "vec ADDRESS LENGTH CAPACITY", "string ADDRESS LENGTH CAPACITY", "hidden
// ADDRESS" for strings that need not be found, "type ADDRESS TYPE" for what only debug information
// names, "table ADDRESS COUNT CAPACITY" for a HashMap or HashSet with memory, and "other ADDRESS" for what is none of these, though
// some of it looks like it. Waits for its input to end.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{Read, Write};
use std::rc::Rc;

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String;
}

struct Circle {
    radius: f64,
    label: String,
}

struct Square {
    side: f64,
}

struct Polygon {
    corners: Vec<(f64, f64)>,
    label: String,
    weight: u64,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius * self.radius * 3.0
    }
    fn name(&self) -> String {
        format!("circle {}", self.label)
    }
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.side * self.side
    }
    fn name(&self) -> String {
        format!("square of {}", self.side)
    }
}

impl Shape for Polygon {
    fn area(&self) -> f64 {
        self.corners.iter().map(|corner| corner.0 * corner.1).sum()
    }
    fn name(&self) -> String {
        format!("polygon {} {}", self.label, self.weight)
    }
}

struct Customer {
    id: u64,
    name: String,
    scores: Vec<u32>,
    visits: Vec<(u64, u64, u64)>,
}

// A pointer beside two numbers, of which one is no larger than the other.
struct Counted {
    room: Box<[u64; 25]>,
    done: u64,
    wanted: u64,
}

#[derive(Default)]
struct All {
    shapes: Vec<Box<dyn Shape>>,
    shared: Vec<Rc<dyn Shape>>,
    customers: Vec<Box<Customer>>,
    texts: Vec<Box<String>>,
    counted: Vec<Box<Counted>>,
    trees: Vec<Box<BTreeMap<u64, u64>>>,
    tables: Vec<Box<HashMap<u64, String>>>,
    queues: Vec<Box<VecDeque<u64>>>,
    marks: Vec<HashSet<[u8; 3]>>,
}

fn say_vec<T>(log: &mut File, vec: &Vec<T>) {
    if vec.capacity() > 0 {
        let (length, capacity) = (vec.len(), vec.capacity());
        writeln!(log, "vec {:p} {} {}", vec.as_ptr(), length, capacity).unwrap();
    }
}

fn say_string(log: &mut File, string: &String) {
    if string.capacity() > 0 {
        let (length, capacity) = (string.len(), string.capacity());
        writeln!(log, "string {:p} {} {}", string.as_ptr(), length, capacity).unwrap();
    }
}

// Allocations that hold it are as large as others, or it is as large as any short text.
fn say_hidden(log: &mut File, string: &String) {
    writeln!(log, "hidden {:p}", string.as_ptr()).unwrap();
}

fn make_shapes(all: &mut All, log: &mut File, count: usize) {
    for i in 0..count {
        let circle = Box::new(Circle { radius: i as f64, label: format!("number {}", i) });
        writeln!(log, "dyn {:p} rust_objects::Circle", &*circle).unwrap();
        say_hidden(log, &circle.label);
        all.shapes.push(circle);
        let square = Box::new(Square { side: i as f64 });
        writeln!(log, "dyn {:p} rust_objects::Square", &*square).unwrap();
        all.shapes.push(square);
        let corners: Vec<_> = (0..i % 7 + 1).map(|k| (k as f64, 1.0)).collect();
        say_vec(log, &corners);
        let polygon = Rc::new(Polygon { corners, label: format!("p{}", i), weight: 1 });
        say_hidden(log, &polygon.label);
        let counts = 16;
        let start = (&*polygon as *const Polygon as usize) - counts;
        writeln!(log, "dyn {:#x} rust_objects::Polygon", start).unwrap();
        all.shared.push(polygon);
    }
}

fn make_customers(all: &mut All, log: &mut File, count: usize) {
    for i in 0..count {
        let mut customer = Box::new(Customer {
            id: i as u64,
            name: "customer ".repeat(i % 9 + 1),
            scores: Vec::with_capacity(i % 31 + 9),
            visits: Vec::new(),
        });
        customer.scores.extend(0..(i % 9) as u32);
        for k in 0..i % 17 {
            customer.visits.push((k as u64, 0, 1));
        }
        writeln!(log, "other {:p}", &*customer).unwrap();
        writeln!(log, "type {:p} rust_objects::Customer", &*customer).unwrap();
        say_string(log, &customer.name);
        say_vec(log, &customer.scores);
        say_vec(log, &customer.visits);
        all.customers.push(customer);
    }
}

fn make_others(all: &mut All, log: &mut File, count: usize) {
    for i in 0..count {
        let n = i as u64;
        let mut text = Box::new(String::with_capacity(i % 200 + 20));
        text.push_str("what was said");
        say_string(log, &text);
        all.texts.push(text);
        let room = Box::new([n; 25]);
        writeln!(log, "other {:p}", &*room).unwrap();
        let counted = Box::new(Counted { room, done: n % 5, wanted: n % 7 + 5 });
        writeln!(log, "type {:p} rust_objects::Counted", &*counted).unwrap();
        all.counted.push(counted);
        all.trees.push(Box::new((0..n % 11 + 1).map(|k| (k, k)).collect()));
        let mut table: HashMap<_, _> = (0..n % 20).map(|k| (k, format!("value {}", k))).collect();
        table.retain(|k, _| n % 3 > 0 || k % 3 > 0);
        table.values().for_each(|value| say_hidden(log, value));
        let table = Box::new(table);
        if table.capacity() > 0 {
            writeln!(log, "table {:p} {} {}", &*table, table.len(), table.capacity()).unwrap();
        }
        all.tables.push(table);
        let queue: VecDeque<_> = (0..n % 30 + 1).collect();
        writeln!(log, "deque {:p}", queue.as_slices().0.as_ptr()).unwrap();
        all.queues.push(Box::new(queue));
    }
}

fn make_marks(all: &mut All, log: &mut File) {
    for i in 1..100 {
        all.marks.push((0..i * i).map(|k| [k as u8, (k >> 8) as u8, 7]).collect());
    }
    for marks in &mut all.marks {
        let count = marks.len();
        marks.retain(|mark| count % 2 > 0 || mark[0] % 4 > 0);
    }
    for marks in &all.marks {
        writeln!(log, "table {:p} {} {}", marks, marks.len(), marks.capacity()).unwrap();
    }
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut log = File::create(path).unwrap();
    let mut all = Box::new(All::default());
    make_shapes(&mut all, &mut log, 300);
    make_customers(&mut all, &mut log, 300);
    make_others(&mut all, &mut log, 300);
    make_marks(&mut all, &mut log);
    let mut aside: HashMap<&str, u16> = HashMap::new();
    aside.insert("of main", 1);
    writeln!(log, "table {:p} {} {}", &aside, aside.len(), aside.capacity()).unwrap();
    writeln!(log, "ready").unwrap();
    drop(log);
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
    let area: f64 = all.shapes.iter().map(|shape| shape.area()).sum();
    let names: usize = all.shared.iter().map(|shape| shape.name().len()).sum();
    let scores: u64 = all.customers.iter().map(|c| c.id + c.visits.len() as u64).sum();
    let rooms: u64 = all.counted.iter().map(|c| c.room[3] + c.done + c.wanted).sum();
    let rest = aside.len() + all.marks.len() + all.trees.len() + all.tables.len() + all.queues.len() + all.texts.len();
    println!("{} {} {} {} {}", area, names, scores, rooms, rest);
    println!("{}", all.shapes.iter().map(|shape| shape.name().len()).sum::<usize>());
}
