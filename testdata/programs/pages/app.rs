// The program of docs/rust.md: shapes behind dyn, and names.
mod shop {
    pub trait Shape {
        fn area(&self) -> f64;
    }
    pub struct Circle(pub f64, pub [f64; 4]);
    impl Shape for Circle {
        fn area(&self) -> f64 {
            self.0 * self.0 + self.1[0]
        }
    }
    pub struct Shop {
        pub shapes: Vec<Box<dyn Shape>>,
        pub names: Vec<String>,
        pub table: std::collections::HashMap<u64, u64>,
    }
}

fn main() {
    let shop = Box::new(shop::Shop {
        shapes: (0..300).map(|i| Box::new(shop::Circle(i as f64, [0.0; 4])) as Box<dyn shop::Shape>).collect(),
        names: (0..3000).map(|i| format!("a name that is long enough {i}")).collect(),
        table: (0..500).map(|i| (i, i * i)).collect(),
    });
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    println!("{} {} {}", shop.shapes.iter().map(|one| one.area()).sum::<f64>(), shop.names.len(), shop.table.len());
}
